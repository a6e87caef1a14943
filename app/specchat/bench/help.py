"""What `specchat bench --help` says: what is measured, and how each figure is made."""

from typing import Final

HELP: Final = """Measures what speculation gains on this machine, with one model.

\b
Workloads: edit       rename a variable in pasted code and give it all back
           complete   write docstrings and missing bodies for pasted code
           extract    quote passages of a pasted text
           summarise  a report in three paragraphs
           explain    how a hash table works
           story      of a lighthouse keeper (temperature 1)
           chat       four turns on one report: prose, quotations, prose, an edit
           json       from a few e-mails
Modes:     plain      no speculation
           lookup     drafts by prompt lookup
           draft      drafts by the draft model
           auto       both, as in the chat
           lookup:8   drafts of 8 tokens by prompt lookup, wherever it finds a match
           draft:3    drafts of 3 tokens by the draft model, always
           both:5     as lookup:5, and as draft:5 where there is no match

How it is measured: pass costs are measured anew when the model is loaded. Each workload is answered once from
empty caches; the time to its first token stands in the row of the first mode. Then every mode answers once in
every round, and each round begins with another mode. A run finds the prompt in the target's KV cache and nothing
else: no lookup index, no acceptance estimates, an empty cache in the draft model, whose reading of the prompt
counts as decoding time. Further turns of a chat find what the turns before left; reading the new message is not
decoding and isn't counted. Ratios to plain are taken within each round. Shown are medians and, in brackets, the
range over the rounds; counters are sums over them.

\b
Time per token   every round's time in equal shares over the tokens that it emitted; percentiles over all tokens
pause            the longest round: the longest time between two pieces of text (inter-token latency elsewhere)
draft            share of time spent proposing: the lookup's search and the draft model's passes
verify           share of time in target passes; host: the rest, sampling, checking and text
tokens/pass      emitted tokens / target passes
acceptance       accepted / drafted tokens, for each source

\b
Others (--against):
  llama-cpp-python        its own Llama: plain, lookup:10, lookup:2 (its prompt lookup)
  transformers            its own generate, beside --engine torch, in the same four bits: plain, lookup:10
                          (prompt_lookup_num_tokens), draft (assistant_model, which reads the prompt within its
                          seconds)
  PATH of a llama-server  started with the same files and settings: plain, draft-simple, ngram-mod, ngram-simple, or
                          with sizes: ngram-simple:4:31
  http://127.0.0.1:8080   a llama.cpp server that runs already, as it was started

They are asked the very token ids that our engine read, find the prompt in their KV cache and nothing else kept of
earlier answers, take turns with our modes in every round, and run in processes of their own that end with the
bench. A server's seconds are those of its own timings; its draft model has read the prompt before they begin. In all
else they run as they come: how long their threads spin while they wait, say, which specchat cuts short for itself so
that a busy machine slows it less.

To reproduce a result: same model, flags and Python version (some prompts hold code and text of its standard
library), on a machine with nothing else to do.

\b
specchat bench --model qwen2.5-coder-1.5b
specchat bench --model qwen2.5-coder-1.5b --max-tokens 512 --json > bench.json
specchat bench --workloads edit,chat --sweep 3,5,8,10
specchat bench --modes plain,auto,draft:3 --trace rounds.jsonl --html bench.html
specchat bench --modes plain,auto --against llama-cpp-python,~/llama.cpp/build/bin/llama-server

Ctrl+C ends it; what was finished is printed and written. With --trace and a draft model, every answer is read
through that model afterwards, to record what it would have drafted; this counts nowhere.

--replay tells what plain decoding, every fixed draft length, the best choice in hindsight and specchat's own would have
taken for the recorded answers, under the costs of:

\b
own                the machine that the trace is from
cpu-2-cores        an Intel Xeon, llama.cpp, 1.5B (measured); cpu-2-cores-zen4, cpu-2-cores-torch: an AMD Zen 4
desktop-8-cores    DDR5, 7B (modelled); rtx-3060, rtx-4090, rtx-4090-eager: GPUs, 7B (modelled)

\b
specchat bench --replay rounds.jsonl --costs rtx-4090
"""
