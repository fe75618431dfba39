package operator

// guard makes sure that no run outlives this process. The function that it returns
// is for when all runs have ended.
func (p parts) guard() (end func()) {
	owner, log := p.ansible.runner.Owner, p.options.Logger.WithName("guard")
	if err := owner.Group(); err != nil {
		log.V(1).Info("runs get no control groups of their own; their processes are found by descent and environment", "reason", err.Error())
	}
	return func() {
		if err := owner.Close(); err != nil {
			log.V(1).Info("control groups of runs are left", "reason", err.Error())
		}
	}
}
