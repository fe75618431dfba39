// Package apiproxy is a reverse proxy in front of an API server that makes faults
// on request and keeps a journal of every request.
//
//	p, err := apiproxy.Start(cluster.Config)
//	if err != nil { … }
//	defer p.Close()
//	err = p.WriteKubeconfig(path) // for the program under test
//	remove := p.Add(apiproxy.Rule{ // A status write is applied, and its answer lost.
//		Match: func(r apiproxy.Request) bool { return r.Verb == "patch" && r.Subresource == "status" },
//		Once:  true,
//		Fault: apiproxy.Fault{Break: true},
//	})
//
// A Rule acts on requests: it refuses them, answers late, loses the answer, or
// calls back, so that a test can kill the program before or after exactly this
// write. Hold and Hide act on the events of watches. Away makes the API server
// unreachable.
//
// It listens on plain HTTP at 127.0.0.1, where client-go sends no credentials, and
// forwards requests with those of the configuration that Start got.
//
// The package knows nothing of the program under test.
package apiproxy
