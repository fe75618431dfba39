// Package reads holds the cached reads of runs to a real API server, through the real
// proxy: an answer from memory is the API server's own, object by object and list by
// list; no run reads less than it has written; pages, Tables, field selectors and
// watches stay the API server's; and kubectl and the Kubernetes client of Python
// notice nothing.
//
// Whether an answer came from memory is told by its header X-Cache.
package reads
