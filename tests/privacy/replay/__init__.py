"""Two proxies over two neighbouring databases, which hear the same noised numbers: nothing else may tell them apart."""
