// Package operator composes a manager of a controller-runtime manager and all that watches need,
// and runs it. Package ensign shows it to programs.
//
// Start with manager.go: New makes the controller-runtime manager behind the fence of the lease,
// LoadWatches and AddWatch give it watches, and Start composes the parts that these need and runs
// them. compose (compose.go) does that in steps. The first need no API server, so that faults of
// content come before anything is changed. Then come the API proxy, the informers for children, the
// cache of the watched kinds, and one Supervisor for each watch. A backend (backend.go) is the part
// of a manager for one kind of content, where a watch has such content. stopper (stop.go) ends the
// manager in two phases: first the runs and their statuses, then everything that they need.
//
// runs.go has the parts that runs need. watched.go has the parts that follow and reconcile the
// watched kinds.
//
// LocalRunner and Watches serve commands that run no manager.
//
// It alone imports all trees, most of them by their packages backend and by runapi, and holds none of their logic.
//
// # Gotchas
//
//   - controller-runtime reports the end of each election as an error. libraryLog leaves it out
//     during an orderly stop.
package operator
