// Package ensign makes a manager whose reconcilers are Ansible's roles and playbooks, Helm charts,
// and Go: each kind can use the language that fits it best.
//
// A program makes a Manager, gives it watches and reconcilers of its own, and starts it:
//
//	mgr, err := ensign.NewManager(cfg, ctrl.Options{Scheme: scheme}, ensign.Options{})
//	list, err := mgr.LoadWatches(ctx, "watches.yaml")
//	for _, w := range list { err = mgr.AddWatch(w) }
//	err = (&BackupReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
//	err = mgr.Start(ctx)
//
// The program "manager" does the same, with flags in front.
//
// # Requirements
//
// Roles and playbooks need a Python environment with ansible-core and ansible-runner; charts need
// the program chart-exec beside Options.Executable. A manager without a watch of the kind needs
// neither.
//
// # Once per process
//
// The package sets no global: no signals, no ctrl.SetLogger, no klog, no environment. Each of two
// managers in one process needs its own run directory (Options.RunDir), ports, and registry for
// metrics (Options.Registerer). If they store objects in one namespace, each also needs its own
// ctrl.Options.LeaderElectionID, with or without leader election: the objects' names begin with it.
// Metrics of controller-runtime, and the names of the program's own controllers, are those of the
// process.
package ensign
