"""Many ranks of one run: their collectives matched, who waits for whom, and why."""
