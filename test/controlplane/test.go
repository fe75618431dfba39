package controlplane

import "testing"

// ForTest starts a cluster that ends after the test. Suites of Ginkgo have site.Prepare
// instead.
func ForTest(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	cluster, err := Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return cluster
}
