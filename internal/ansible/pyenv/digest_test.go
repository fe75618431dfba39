package pyenv

import (
	"regexp"
	"testing"
)

func TestDigest(t *testing.T) {
	const inspection = `{"python": "3.13.1", "ansible_core": "2.21.5", "ansible_runner": "2.4.3", "collections": ["/c"],
		"distributions": {"ansible-core": "2.21.5", "jinja2": "3.1.6"}, "collection_versions": {"kubernetes.core": "6.6.0", "my.own": ""}}`
	tests := map[string]struct {
		inspection string
		wantEqual  bool
	}{
		"the same, listed in another order and in another place": {`{"collections": ["/d"], "collection_versions": {"my.own": "", "kubernetes.core": "6.6.0"},
			"distributions": {"jinja2": "3.1.6", "ansible-core": "2.21.5"}, "ansible_core": "2.21.5", "ansible_runner": "2.4.3", "python": "3.13.1"}`, true},
		"another Python": {`{"python": "3.13.2",
			"distributions": {"ansible-core": "2.21.5", "jinja2": "3.1.6"}, "collection_versions": {"kubernetes.core": "6.6.0", "my.own": ""}}`, false},
		"another version of a distribution": {`{"python": "3.13.1",
			"distributions": {"ansible-core": "2.21.5", "jinja2": "3.1.7"}, "collection_versions": {"kubernetes.core": "6.6.0", "my.own": ""}}`, false},
		"one distribution more": {`{"python": "3.13.1",
			"distributions": {"ansible-core": "2.21.5", "jinja2": "3.1.6", "x": "1"}, "collection_versions": {"kubernetes.core": "6.6.0", "my.own": ""}}`, false},
		"one distribution less": {`{"python": "3.13.1",
			"distributions": {"ansible-core": "2.21.5"}, "collection_versions": {"kubernetes.core": "6.6.0", "my.own": ""}}`, false},
		"another version of a collection": {`{"python": "3.13.1",
			"distributions": {"ansible-core": "2.21.5", "jinja2": "3.1.6"}, "collection_versions": {"kubernetes.core": "6.6.1", "my.own": ""}}`, false},
		"a collection that gained a version": {`{"python": "3.13.1",
			"distributions": {"ansible-core": "2.21.5", "jinja2": "3.1.6"}, "collection_versions": {"kubernetes.core": "6.6.0", "my.own": "1.0.0"}}`, false},
		"a distribution in place of a collection of the same name": {`{"python": "3.13.1",
			"distributions": {"ansible-core": "2.21.5", "jinja2": "3.1.6", "kubernetes.core": "6.6.0"}, "collection_versions": {"my.own": ""}}`, false},
	}
	base, err := parseInfo([]byte(inspection))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(base.Digest) {
		t.Errorf("got %q, want 64 hexadecimal digits", base.Digest)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseInfo([]byte(test.inspection))
			if err != nil {
				t.Fatal(err)
			}
			if (got.Digest == base.Digest) != test.wantEqual {
				t.Errorf("got %s and %s, want equal: %v", base.Digest, got.Digest, test.wantEqual)
			}
		})
	}
}
