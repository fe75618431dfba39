package plan

// Real lists the fixed plans that are performed with the real Ansible. Only
// those of its phases are known that show in the file system, and the task's.
func Real() []Plan {
	return []Plan{
		{Create, StatusRunning, CrashAfter},
		{Create, MidTask, CrashBefore},
		{Update, StatusResult, Lost},
		{Update, MidTask, Hidden},
		{Update, InputsWritten, CrashBefore},
		{Delete, FinalizerRemove, CrashAfter},
		{DeleteRunning, MidTask, Away},
		{DeleteRunning, StatusResult, Timeout},
		{Recreate, MidTask, Stale},
		{PlainDeleteRunning, MidTask, CrashBefore},
	}
}

// Fast lists the fixed plans that are performed with every `make test`: each
// operation, each point and each fault at least once.
func Fast() []Plan {
	return []Plan{
		{Create, FinalizerAdd, Lost},
		{Create, StatusRunning, CrashAfter},
		{Create, DirectoryMade, CrashBefore},
		{Create, InputsWritten, Reset},
		{Create, Event, Unavailable},
		{Create, Spawned, Stale},
		{Create, Exited, Frozen},
		{Update, StatusResult, Lost},
		{Update, StatusResult, Race},
		{Update, StatusResult, Internal},
		{Update, MidTask, Hidden},
		{Update, Stats, CrashBefore},
		{Update, BeforeStatus, CrashBefore},
		{Update, Exited, Throttled},
		{Delete, FinalizerRemove, CrashAfter},
		{Delete, FirstEvent, Delayed},
		{DeleteRunning, MidTask, Away},
		{DeleteRunning, StatusResult, Conflict},
		{DeleteRunning, FinalizerRemove, Timeout},
		{Recreate, FinalizerRemove, Lost},
		{Recreate, StatusRunning, Stale},
		{Retry, StatusResult, CrashBefore},
		{DeleteRetry, StatusResult, Reset},
		{Repair, StatusResult, Forbidden},
		{Storm, StatusResult, Lost},
		{PlainDeleteRunning, MidTask, CrashBefore},
		{PlainDeleteRunning, Spawned, Hidden},
		{PlainRecreateRunning, MidTask, Delayed},
	}
}
