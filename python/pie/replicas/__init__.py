"""Replicas of an engine behind one address.

Each replica is an engine with a server of its own on loopback (`replica`), in a process that Ray starts and starts
again (`actors`). The front (`front`) looks at the head of each connection, chooses the replica of its session by what
the session shares prefixes by (`routing`), and passes on whatever comes. It understands no message.
"""
