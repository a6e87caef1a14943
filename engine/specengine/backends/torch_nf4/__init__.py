"""The torch runtime: a Hugging Face model in four bits (bitsandbytes NF4) behind the LanguageModel contract.

Only this package imports torch, and only when a model is to run in it: the extra `gpu` may not be installed.
"""
