"""Chats on disk: one SQLite file in the data folder, written as it happens, shared safely by all windows."""
