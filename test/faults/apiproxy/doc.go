// Package apiproxy is a reverse proxy in front of an API server that makes faults
// on request and keeps a journal of every request.
//
//	p, err := apiproxy.Start(cluster.Config)
//	if err != nil { … }
//	defer p.Close()
//	err = p.WriteKubeconfig(path) // for the program under test
//	remove := p.Add(apiproxy.Rule{
//		Name:  "the second status write is applied, and its answer lost",
//		Match: func(r apiproxy.Request) bool { return r.Verb == "patch" && r.Subresource == "status" },
//		Skip:  1,
//		Fault: apiproxy.LoseAnswer(),
//	})
//
// A Rule acts on requests: it refuses them, answers late, loses the answer, or
// calls back, so that a test can kill the program before or after exactly this
// write. A WatchRule acts on the events of watches: it holds them back, or hides
// them and lets the program find out by a new list. Away makes the API server
// unreachable.
//
// It listens on plain HTTP at 127.0.0.1, where client-go sends no credentials. A
// request without them is forwarded with those of the configuration that Start
// got, one with them as it is. Programs that are to have rights of their own get
// a proxy each.
//
// The package knows nothing of the program under test.
package apiproxy
