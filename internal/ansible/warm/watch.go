package warm

import "time"

// watch kills the process if it does not answer: it would not tell how its forks end either.
func (p *process) watch() {
	ticker := time.NewTicker(p.server.LookPause)
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ticker.C:
		}
		if p.isSilent() {
			p.server.Logger.Info("a server for warm runs does not answer, and is killed")
			p.kill()
			return
		}
		p.ask()
	}
}

// isSilent reports whether the process has not answered, or has taken too long to start.
func (p *process) isSilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.served {
		return time.Since(p.changed) > startTimeout
	}
	return p.asked && !p.answered
}

// ask asks the process to say that it works.
func (p *process) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served {
		p.asked, p.answered = true, false
		p.order(orderAnswer)
	}
}

// order is called with the lock held. One that cannot be told has ended, or does not answer.
func (p *process) order(what byte) {
	_ = p.control.SetWriteDeadline(time.Now().Add(answerTimeout))
	_, _ = p.control.Write([]byte{what})
}
