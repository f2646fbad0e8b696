"""What the engine must answer, computed without it: independent code, a few lines each."""
