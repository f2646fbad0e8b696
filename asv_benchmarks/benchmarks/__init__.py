"""The benchmarks of Pie, by the rows of its performance goals."""
