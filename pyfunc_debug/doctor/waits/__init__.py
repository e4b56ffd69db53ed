"""What waits for ever, or forked where it must not: processes, pools, locks and queues."""
