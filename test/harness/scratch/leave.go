package scratch

import "syscall"

// Leave ends a process that plays another program. os.Exit would keep it for a second
// where there is the race detector, which waits for what it may still find.
func Leave(code int) { syscall.Exit(code) }
