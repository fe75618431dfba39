package mysql

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// sightings are all that somebody can look at, by a name of the place.
type sightings map[string][]byte

var _ = Describe("passwords", func() {
	It("are nowhere to be seen, whether runs succeed or fail", func(ctx context.Context) {
		var mu sync.Mutex
		lines := map[string]bool{}
		end := harness.Every(50*time.Millisecond, func() {
			processes, _ := harness.ProcessesOf(operator.RunDir()) // What can't be read has ended.
			mu.Lock()
			defer mu.Unlock()
			for _, p := range processes {
				lines[p.CommandLine] = true
			}
		})
		place, name := newPlace(ctx), own("visible_user")
		secrets := map[string]string{"root's": server.Password, "the first": rand.Text(), "the second": rand.Text(), "a wrong administrator's": rand.Text()}
		secret(ctx, place, "password", secrets["the first"])
		u := here(user(place, name, "nowhere", "SELECT"))
		ground.Create(ctx, u)
		succeed(ctx, u)
		secret(ctx, place, "password", secrets["the second"])
		Eventually(ctx, as(name, secrets["the second"], "SELECT 1")).Should(Equal("1"))
		secret(ctx, place, "admin", secrets["a wrong administrator's"])
		change(ctx, u, "privileges", granted("elsewhere", "SELECT"))
		fail(ctx, u, Not(BeEmpty()))
		end()

		found := look(ctx, place)
		for line := range lines {
			found["command lines"] = append(found["command lines"], line+"\n"...)
		}
		for what, password := range secrets {
			hash := strings.TrimPrefix(ask(ctx, "SELECT PASSWORD('"+password+"')"), "*")
			for where, text := range found {
				for _, form := range append(inBase64(password), password, password[2:], hash, strings.ToLower(hash)) {
					Expect(bytes.Contains(text, []byte(form))).To(BeFalse(), "%s password, as %s, is in %s", what, form, where)
				}
			}
		}
		// The search finds what may be seen.
		Expect(string(found["the log"])).To(ContainSubstring(place + "/user"))
		Expect(string(found["the CR user"])).To(ContainSubstring(name))
		Expect(string(found["command lines"])).To(ContainSubstring("mysqluser"))
		Expect(found).To(ContainElement(WithTransform(func(text []byte) string { return string(text) }, ContainSubstring("Log in"))))
	})
})

// look collects what the manager shows and keeps, and what is in the namespace but
// Secrets.
func look(ctx context.Context, place string) sightings {
	GinkgoHelper()
	found := sightings{}
	text, err := operator.Log()
	Expect(err).NotTo(HaveOccurred())
	found["the log"] = []byte(text)
	text, err = operator.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	found["the metrics"] = []byte(text)
	for _, kind := range []string{"MySQLCluster", "MySQLUser"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "myapp.myorg.tld", Version: "v1", Kind: kind})
		Expect(ground.Client.List(ctx, list, client.InNamespace(place))).To(Succeed())
		for _, item := range list.Items {
			found["the CR "+item.GetName()] = encode(item.Object)
		}
	}
	events := &corev1.EventList{}
	Expect(ground.Client.List(ctx, events, client.InNamespace(place))).To(Succeed())
	found["the Events"] = encode(events.Items)
	Expect(filepath.WalkDir(operator.Options.Home, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var content []byte
			content, err = os.ReadFile(path)
			found["the file "+path] = append(content, path...)
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})).To(Succeed())
	return found
}

func encode(value any) []byte {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// inBase64 are the digits that a text has wherever it stands in what was encoded.
func inBase64(text string) (all []string) {
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		all = append(all, encoded[(before*8+5)/6:len(encoded)-1])
	}
	return all
}
