"""The embedded substrate: runs are processes of this machine, the store is a directory (`headrace dev`)."""
