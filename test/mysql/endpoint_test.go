package mysql

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a MySQLEndpoint", func() {
	It("writes into no ConfigMap of somebody else", func(ctx context.Context) {
		place := newPlace(ctx)
		theirs := &corev1.ConfigMap{ObjectMeta: metaOf(place, "theirs"), Data: map[string]string{"host": "theirs"}}
		// One of another endpoint, too, is somebody else's.
		another := &corev1.ConfigMap{ObjectMeta: metaOf(place, "another"), Data: map[string]string{"host": "another"}}
		another.Labels = map[string]string{"mysql-endpoint": "another", "app.kubernetes.io/managed-by": "ensign"}
		ground.Create(ctx, theirs, another)
		for _, victim := range []*corev1.ConfigMap{theirs, another} {
			e := object("MySQLEndpoint", place, "greedy-"+victim.Name, spec{"cluster": "server", "configMap": victim.Name})
			ground.Create(ctx, e)
			fail(ctx, e, ContainSubstring("ConfigMap "+place+"/"+victim.Name+" exists and has no owner, so it does not belong to MySQLEndpoint greedy-"+victim.Name))
			Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(victim), victim)).To(Succeed())
			Expect(victim.Data).To(Equal(map[string]string{"host": victim.Name}))
			Expect(victim.OwnerReferences).To(BeEmpty())
		}
	})
})
