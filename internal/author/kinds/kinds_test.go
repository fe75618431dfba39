package kinds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/watches"
)

func greetings() []watches.Watch {
	return []watches.Watch{{GVK: schema.GroupVersionKind{Group: "demo.example.com", Version: "v1", Kind: "Greeting"}}, {GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}}
}

func TestKindsAsPeopleWriteThem(t *testing.T) {
	for word, want := range map[string]string{
		"Greeting": "Greeting", "greeting": "Greeting", "greetings": "Greeting", "greetings.demo.example.com": "Greeting", "GREETING.demo.example.com": "Greeting",
		"secret": "Secret", Full(schema.GroupKind{Kind: "Secret"}): "Secret",
	} {
		if watch, err := Of(word, greetings()); err != nil || watch.GVK.Kind != want {
			t.Errorf("%s: want %s, got %s, %v", word, want, watch.GVK.Kind, err)
		}
	}
	for _, word := range []string{"greet", "greetings.example.com", "secret.example.com", ""} {
		if _, err := Of(word, greetings()); err == nil || !strings.Contains(err.Error(), "watches.yaml has Greeting, Secret") {
			t.Errorf("%s: got %v", word, err)
		}
	}
}

func TestPluralsAreThoseOfKubebuilder(t *testing.T) {
	for kind, want := range map[string]string{
		"Menu": "menus", "Gateway": "gateways", "Relay": "relays", "Play": "plays", "Policy": "policies", "NetworkPolicy": "networkpolicies",
		"Index": "indices", "Box": "boxes", "Ingress": "ingresses", "Batch": "batches", "Endpoints": "endpoints", "Redis": "redis", "": "",
	} {
		if plural, singular := Words(kind); plural != want || singular != strings.ToLower(kind) {
			t.Errorf("%s: want %s, got %s, %s", kind, want, plural, singular)
		}
	}
}

func TestAKindOfASimilarNameIsNamed(t *testing.T) {
	for word, want := range map[string]string{"greetng": `; did you mean "Greeting"?`, "Secrets.example.com": "Greeting, Secret"} {
		if _, err := Of(word, greetings()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s at its end", word, err, want)
		}
	}
	f := Finder{Watches: greetings()}
	if _, err := f.All("demo.exmple.com"); err == nil || !strings.HasSuffix(err.Error(), `; did you mean "demo.example.com"?`) {
		t.Errorf("of a group: got %v", err)
	}
}

func TestSplit(t *testing.T) {
	for arg, want := range map[string][2]string{"greeting": {"greeting"}, "greeting/hello": {"greeting", "hello"}} {
		if kind, name, err := Split(arg); err != nil || [2]string{kind, name} != want {
			t.Errorf("%s: want %q, got %q, %q, %v", arg, want, kind, name, err)
		}
	}
	for _, arg := range []string{"", "/", "/hello", "greeting/", "greeting/a/b"} {
		if _, _, err := Split(arg); err == nil {
			t.Errorf("%s: want an error", arg)
		}
	}
}

func TestAllKindsNeedWatchesOrAGroup(t *testing.T) {
	f := Finder{Watches: greetings()}
	if all, err := f.All(""); err != nil || len(all) != 2 || !all[0].Known {
		t.Errorf("got %v, %v", all, err)
	}
	if all, err := f.All("demo.example.com"); err != nil || len(all) != 1 || all[0].GVK.Kind != "Greeting" {
		t.Errorf("of a group: got %v, %v", all, err)
	}
	if _, err := f.All("example.com"); err == nil || !strings.Contains(err.Error(), "has no kind of this group") {
		t.Errorf("of an unknown group: got %v", err)
	}
	if _, err := (&Finder{}).All(""); err == nil || !strings.Contains(err.Error(), "--group") {
		t.Errorf("without watches: got %v", err)
	}
}
