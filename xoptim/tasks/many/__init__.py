"""Where many models are, and the processes and machines that treat them one by one."""
