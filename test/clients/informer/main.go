// Follows the ConfigMaps of a namespace with a shared informer of client-go, in protobuf only, and prints each change as a line:
// "synced", "add NAME VERSION", "update NAME VERSION" or "delete NAME". When standard input closes, prints "cached NAME VERSION" for
// each object in the informer's cache, in the order of the names, and exits.
//
// Usage: informer KUBECONFIG NAMESPACE
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func newClient(kubeconfig string) rest.Interface {
	scheme := runtime.NewScheme()
	fail(v1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, v1.SchemeGroupVersion)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	fail(err)
	config.APIPath = "/api"
	config.GroupVersion = &v1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf
	client, err := rest.RESTClientFor(config)
	fail(err)
	return client
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: informer KUBECONFIG NAMESPACE")
		os.Exit(2)
	}
	client, namespace := newClient(os.Args[1]), os.Args[2]
	parameters := metav1.ParameterCodec
	source := &cache.ListWatch{
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
			list := &v1.ConfigMapList{}
			request := client.Get().Namespace(namespace).Resource("configmaps").VersionedParams(&options, parameters)
			return list, request.Do(context.TODO()).Into(list)
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			request := client.Get().Namespace(namespace).Resource("configmaps").VersionedParams(&options, parameters)
			return request.Watch(context.TODO())
		},
	}
	// The informer restarts a reflector that fails with a back-off that grows to 30 s.
	informer := cache.NewSharedInformer(source, &v1.ConfigMap{}, 0*time.Second)
	print := func(change string) func(object interface{}) {
		return func(object interface{}) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			each := object.(*v1.ConfigMap)
			fmt.Println(change, each.Name, each.Data["version"])
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    print("add"),
		UpdateFunc: func(_, object interface{}) { print("update")(object) },
		DeleteFunc: print("delete"),
	})
	fail(err)
	stop := make(chan struct{})
	go informer.Run(stop)
	cache.WaitForCacheSync(stop, informer.HasSynced)
	fmt.Println("synced")
	_, err = io.Copy(io.Discard, os.Stdin)
	fail(err)
	close(stop)
	var lines []string
	for _, object := range informer.GetStore().List() {
		each := object.(*v1.ConfigMap)
		lines = append(lines, fmt.Sprintln("cached", each.Name, each.Data["version"]))
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Print(line)
	}
}
