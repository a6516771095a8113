"""The filter plugins of kube-scheduler, a file each but for two about volumes, and what several of them compute."""
