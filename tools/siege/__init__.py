"""Forty attackers, each with another attack, beside honest users of one server.

It measures what the honest ones got, and what the server took.

`python -m tools.siege --seconds 600 --memory 2GiB` starts `pie serve` on loopback, measures ten honest users alone,
then beside the attackers, and prints one table. Everything ends with it. The attacks are aimed at the server that it
started, and at nothing else.
"""
