"""Says that it has begun, and computes for ever."""

from inferlet import session


def main(input):
    session.send("spinning")
    while True:
        pass
