/work/main/.venv/bin/python: can't open file '/work/wt/ha/quick.py': [Errno 2] No such file or directory
