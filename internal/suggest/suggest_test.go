package suggest

import "testing"

func TestOf(t *testing.T) {
	known := []string{"eviction", "count", "secret_name", "users", "port2", "ab", "kubernetes.core.k8s_info"}
	for name, want := range map[string]string{
		"evction":                   "eviction",    // A letter is missing,
		"evictionn":                 "eviction",    // is too many,
		"evistion":                  "eviction",    // is wrong,
		"eivction":                  "eviction",    // or two are swapped.
		"secert_naem":               "secret_name", // Long names may have two slips,
		"kubernetes.core.k8sinfo":   "kubernetes.core.k8s_info",
		"coumts":                    "", // short ones one alone,
		"user":                      "users",
		"abc":                       "", // and the shortest none.
		"count":                     "", // It is there.
		"port3":                     "", // Another number is another name.
		"something_quite_different": "",
		"":                          "",
	} {
		got, ok := Of(name, known)
		if got != want || ok != (want != "") {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
	if got, _ := Of("counts", []string{"bounts", "count"}); got != "bounts" {
		t.Errorf("of two that are as near want always the same, got %q", got)
	}
	if got, _ := Of("secret_nam", []string{"secret_nums", "secret_name"}); got != "secret_name" {
		t.Errorf("want the nearest, got %q", got)
	}
}
