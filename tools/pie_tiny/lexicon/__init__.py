"""Words and facts that the generator draws from. Written for this project."""
