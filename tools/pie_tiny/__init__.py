"""How pie-tiny, the embedded chat model, is made.

`lexicon` holds words and facts, `skills` turn them into exchanges, `mix` strings exchanges
into conversations, `render` gives their text, `tokenizer` and `batches` make tokens of it,
`train` learns from them, `export` writes the released directory. `draw` keeps training,
validation and the sealed set apart; `evaluation` asks, `judge` decides, `score` counts.
`__main__` is the command.
"""

import os

# Two threads that wait for each other by spinning lose most of their time on a machine that is
# shared: 1,000 against 4,000 tokens for a second of one core, seen on two busy cores. OpenMP
# reads this when torch is loaded, hence here.
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
