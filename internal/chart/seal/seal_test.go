package seal

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
)

func keys(texts ...string) Keys {
	var all Keys
	for i, text := range texts {
		all = append(all, Key{Number: len(texts) - i, Secret: []byte(strings.Repeat(text, keyBytes))})
	}
	return all
}

func TestASealHoldsForItsContentAndPurposeAlone(t *testing.T) {
	all := keys("a")
	seal := all.For("release", "ns", "a").Seal([]byte("content"))
	if errs := validation.IsValidLabelValue(seal); len(errs) > 0 {
		t.Errorf("%q is not a label: %v", seal, errs)
	}
	for why, test := range map[string]struct {
		keys          Keys
		seal, content string
		want          bool
	}{
		"it is the seal":              {all.For("release", "ns", "a"), seal, "content", true},
		"another content":             {all.For("release", "ns", "a"), seal, "content2", false},
		"another purpose":             {all.For("release", "ns", "b"), seal, "content", false},
		"texts that join to the same": {all.For("release", "n", "sa"), seal, "content", false},
		"the key of all purposes":     {all, seal, "content", false},
		"another key":                 {keys("b").For("release", "ns", "a"), seal, "content", false},
		"no key":                      {nil, seal, "content", false},
		"no seal":                     {all.For("release", "ns", "a"), "", "content", false},
		"a seal that was cut":         {all.For("release", "ns", "a"), seal[:len(seal)-1], "content", false},
		"the number alone":            {all.For("release", "ns", "a"), "1.", "content", false},
	} {
		if valid := test.keys.Verify(test.seal, []byte(test.content)); valid != test.want {
			t.Errorf("%s: got %v", why, valid)
		}
	}
	if got := (Keys{}).Seal([]byte("a")); got != "" {
		t.Errorf("without a key the seal is %q", got)
	}
}

func TestANewKeyMakesNoSealInvalid(t *testing.T) {
	before := keys("a").Seal([]byte("content"))
	both := keys("b", "a")
	if !both.Verify(before, []byte("content")) || !both.Verify(both.Seal([]byte("content")), []byte("content")) {
		t.Error("a seal is invalid")
	}
	if keys("a").Verify(both.Seal([]byte("content")), []byte("content")) {
		t.Error("the former key seals")
	}
}

func TestTheFirstStartMakesTheKey(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	first, err := (&Store{Secrets: secrets, Name: "a"}).Keys(t.Context())
	if err != nil || len(first) != 1 || len(first[0].Secret) != keyBytes {
		t.Fatalf("got %d keys, %v", len(first), err)
	}
	again, err := (&Store{Secrets: secrets, Name: "a"}).Keys(t.Context())
	if err != nil || len(again) != 1 || string(again[0].Secret) != string(first[0].Secret) {
		t.Errorf("the next manager has other keys, or %v", err)
	}
	temporary := Temporary()
	one, _ := temporary(t.Context())
	two, _ := temporary(context.Background())
	if len(one) != 1 || string(one[0].Secret) != string(two[0].Secret) || string(one[0].Secret) == string(first[0].Secret) {
		t.Error("a temporary key is not one key of its own")
	}
}

func TestAKeySecretThatIsNoneIsRefused(t *testing.T) {
	good := strings.Repeat("k", keyBytes)
	for why, test := range map[string]struct {
		data map[string]string
		want string // of the error
	}{
		"two keys":            {map[string]string{"1": good, "10": good}, ""},
		"none":                {nil, "no key"},
		"a short one":         {map[string]string{"1": good[1:]}, "bytes"},
		"a name":              {map[string]string{"current": good}, `"current"`},
		"zero":                {map[string]string{"0": good}, `"0"`},
		"a number with zeros": {map[string]string{"01": good}, `"01"`},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}, Data: map[string][]byte{}}
		for name, text := range test.data {
			secret.Data[name] = []byte(text)
		}
		got, err := (&Store{Secrets: fake.NewClientset(secret).CoreV1().Secrets("ns"), Name: "a"}).Keys(t.Context())
		switch {
		case test.want == "":
			if err != nil || len(got) != 2 || got[0].Number != 10 {
				t.Errorf("%s: got %d keys, %v", why, len(got), err)
			}
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got %v", why, err)
		}
	}
}
