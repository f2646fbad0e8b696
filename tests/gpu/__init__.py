"""What is tried of the cuda back end on a machine with a GPU: `make gpu`, in parts that stand by themselves."""
