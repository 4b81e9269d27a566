"""The numbers of many groups in many replicates."""

import numpy as np

Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float64]]  # groups × replicates
