package harness

import "time"

// Every calls look again and again, until end is called, which waits for the last call.
func Every(interval time.Duration, look func()) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				look()
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
