package mysql

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a MySQLEndpoint", func() {
	It("writes into no ConfigMap of somebody else, and leaves it when it goes", func(ctx context.Context) {
		place := newPlace(ctx)
		other := object("MySQLEndpoint", place, "other", spec{"cluster": "server", "configMap": "other"})
		ground.Create(ctx, other)
		victims := map[string]*corev1.ConfigMap{
			"nobody": {}, "another": {}, "release": {},
		}
		victims["another"].OwnerReferences = []metav1.OwnerReference{{APIVersion: other.GetAPIVersion(), Kind: other.GetKind(), Name: other.GetName(), UID: other.GetUID()}}
		victims["release"].Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		victims["release"].Annotations = map[string]string{"meta.helm.sh/release-name": "theirs", "meta.helm.sh/release-namespace": place}
		belongs := map[string]string{"nobody": "has no owner", "another": "belongs to MySQLEndpoint other", "release": "belongs to the Helm release " + place + "/theirs"}
		for name, victim := range victims {
			victim.Namespace, victim.Name, victim.Data = place, name, map[string]string{"host": name}
			ground.Create(ctx, victim)
			e := object("MySQLEndpoint", place, "greedy-"+name, spec{"cluster": "server", "configMap": name})
			ground.Create(ctx, e)
			fail(ctx, e, ContainSubstring("ConfigMap "+place+"/"+name+" exists and "+belongs[name]))
			remove(ctx, e)
			now := &corev1.ConfigMap{}
			Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(victim), now)).To(Succeed(), name)
			now.TypeMeta = victim.TypeMeta
			Expect(now).To(Equal(victim), name)
		}
	})
})
