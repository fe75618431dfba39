package identity

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func from(t *testing.T, fill byte) *Identity {
	t.Helper()
	i, err := New(bytes.Repeat([]byte{fill}, seedBytes))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestASessionIsTheSameForAllManagersOfAnOperator(t *testing.T) {
	one, again, other := from(t, 1), from(t, 1), from(t, 2)
	want := Session{JobUID: "job", PodUID: "pod", RunID: "run.1"}
	token := one.Token(want)
	if got, ok := again.Session(token); !ok || got != want || again.Token(want) != token || again.PublicKey() != one.PublicKey() {
		t.Errorf("the other manager reads %+v, %t", got, ok)
	}
	payload, signature, _ := strings.Cut(token, ".")
	foreign := one.Token(Session{JobUID: "job", PodUID: "pod", RunID: "run.2"})
	for why, text := range map[string]string{
		"another operator's":      other.Token(want),
		"another run's payload":   strings.Split(foreign, ".")[0] + "." + signature,
		"another run's signature": payload + "." + strings.Split(foreign, ".")[1],
		"no signature":            payload,
		"an empty signature":      payload + ".",
		"nothing":                 "",
		"a dot":                   ".",
		"more after it":           token + "A",
		"an upper case letter":    strings.ToUpper(token),
	} {
		if got, ok := one.Session(text); ok {
			t.Errorf("%s: read as %+v", why, got)
		}
	}
}

// FuzzSession shows that no text but that of Token is a session.
func FuzzSession(f *testing.F) {
	i, err := New(make([]byte, seedBytes))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(i.Token(Session{"j", "p", "r"}), "j", "p", "r")
	f.Fuzz(func(t *testing.T, text, job, pod, run string) {
		if got, ok := i.Session(text); ok && i.Token(got) != text {
			t.Errorf("%q is read as %+v", text, got)
		}
		want := Session{types.UID(strings.ToValidUTF8(job, "")), types.UID(strings.ToValidUTF8(pod, "")), strings.ToValidUTF8(run, "")}
		if got, ok := i.Session(i.Token(want)); !ok || got != want {
			t.Errorf("want %+v, got %+v, %t", want, got, ok)
		}
	})
}

// An agent must not give its token, or the texts of its run, to whoever answers at the address.
func TestAnAgentAcceptsTheKeyAlone(t *testing.T) {
	one, again, other := from(t, 1), from(t, 1), from(t, 2)
	config, err := ClientTLS(one.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why    string
		server *Identity
		want   error
	}{{"the manager", one, nil}, {"the next manager", again, nil}, {"another operator's", other, ErrOtherServer}} {
		t.Run(test.why, func(t *testing.T) {
			here, there := net.Pipe()
			go func() {
				server := tls.Server(there, test.server.ServerTLS())
				_ = server.Handshake()
				_ = server.Close()
			}()
			client := tls.Client(here, config)
			if err := client.HandshakeContext(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("want %v, got %v", test.want, err)
			}
			_ = here.Close()
		})
	}
	for _, bad := range []string{"", "x", one.PublicKey()[4:]} {
		if _, err := ClientTLS(bad); err == nil {
			t.Errorf("%q is a key", bad)
		}
	}
}

func TestManagersShareOneSecret(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "shared"}
	cluster := fake.NewClientBuilder().Build()
	first, err := Load(t.Context(), cluster, name, map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Load(t.Context(), cluster, name, nil)
	if err != nil || second.PublicKey() != first.PublicKey() {
		t.Errorf("the second manager has another key: %v", err)
	}
	secret := &corev1.Secret{}
	if err := cluster.Get(t.Context(), name, secret); err != nil || secret.Labels["a"] != "b" {
		t.Errorf("%v, labels %v", err, secret.Labels)
	}
	secret.Data = map[string][]byte{seedKey: []byte("short")}
	if err := cluster.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), cluster, name, nil); err == nil || !strings.Contains(err.Error(), "ns/shared") {
		t.Errorf("want an error that names the Secret, got %v", err)
	}
}
