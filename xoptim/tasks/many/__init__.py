"""The places of many models, and the processes and machines that treat them one by one."""
