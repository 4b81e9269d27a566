"""From noised counts to synthetic rows: post-processing, by numbers that are already released and nothing else."""
