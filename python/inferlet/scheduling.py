"""The market for pages: what this program has, and what pages cost.

Where pages are short, contexts bid for theirs, and whoever holds some pays rent, which returns to all programs as
dividends. A bid follows from what the program has, unless it says its own (`Context.set_bid`). No token depends on any
of it, but on what a program does with these numbers.
"""

from __future__ import annotations

from wit_world.imports import scheduling as _scheduling

from inferlet import _arguments
from inferlet.context import Context
from inferlet.model import Model

__all__ = ["balance", "dividend", "latency", "price", "rent"]


def balance(model: Model) -> float:
    """Credits that this program has for a model.

    What its bids win is paid from them; with none left it loses every auction, and goes on all the same.
    """
    _arguments.of_type("model", model, Model)
    return _scheduling.balance(model._raw)


def rent(ctx: Context) -> float:
    """Credits that a page costs whoever holds it: the highest bid that lost when the last batch was planned.

    It is of the device that the context is on, and 0 where pages are not short.
    """
    _arguments.of_type("ctx", ctx, Context)
    return _scheduling.rent(ctx._raw)


def dividend(model: Model) -> float:
    """Credits that this program got as its last share of the rent, in proportion to what it began with.

    It is 0 until pages were short while the program ran: nobody pays rent otherwise. From then on it is the share of
    the last auction.
    """
    _arguments.of_type("model", model, Model)
    return _scheduling.dividend(model._raw)


def latency(ctx: Context) -> float:
    """Seconds that a batch takes on the device of the context, as of late; 0 before the first."""
    _arguments.of_type("ctx", ctx, Context)
    return _scheduling.latency(ctx._raw)


def price() -> float:
    """Credits that a page of a context costs once, when it is full."""
    return _scheduling.price()
