"""`srm-control deploy`: the files of a job that runs a configuration on a platform. Settings in, texts out.

`configuration.py` writes the user's configuration anew, without its secrets: each becomes a reference to a place of the
platform, and a need, which the user has to create. A module per platform adds the job itself; `writing.py` is the only
one that touches a disk. Nothing here asks a platform or a cluster.
"""
