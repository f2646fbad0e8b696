"""Pie: an LLM serving engine whose unit of work is a program."""
