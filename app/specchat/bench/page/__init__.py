"""`specchat bench --html FILE`: the results as one page that needs nothing else."""
