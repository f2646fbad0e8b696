"""Drivers in processes of their own.

One that is killed, hangs or breaks off costs the requests of its batch, and nothing else.
"""
