package jobevent

// Sanitize gives a copy of a task's result that is fit to be shown: without
// "invocation" at any depth, with what Secrets hold masked, and no deeper than
// 64 levels.
func Sanitize(result map[string]any) map[string]any { return nil }
