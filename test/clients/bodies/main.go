// Sends objects of every kind, and requests for every subresource, with the typed clients of client-go in protobuf. Prints each object that
// it sends in protobuf as a line of JSON, in the order of the requests.
//
// Usage: bodies KUBECONFIG
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	authentication "k8s.io/api/authentication/v1"
	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "default"

var (
	ctx     = context.Background()
	created = metav1.CreateOptions{}
	updated = metav1.UpdateOptions{}
	when    = time.Date(2026, 1, 31, 9, 30, 0, 123456000, time.UTC)
)

// show prints the object that the next request sends.
func show(object interface{}) {
	line, err := json.Marshal(object)
	must(nil, err)
	fmt.Println(string(line))
}

func must(_ interface{}, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bodies:", err)
		os.Exit(1)
	}
}

func to[T any](value T) *T { return &value }

func of(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func quantities(text string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceStorage: resource.MustParse(text)}
}

func container(name string) v1.Container {
	return v1.Container{Name: name, Image: "busybox:1.36", Command: []string{"sleep", "3600"}}
}

func volumes() []v1.Volume {
	return []v1.Volume{
		{Name: "empty", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{
			Medium: v1.StorageMediumMemory, SizeLimit: to(resource.MustParse("64Mi"))}}},
		{Name: "claim", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim", ReadOnly: true}}},
		{Name: "host", VolumeSource: v1.VolumeSource{
			HostPath: &v1.HostPathVolumeSource{Path: "/etc", Type: to(v1.HostPathDirectory)}}},
		{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{
			SecretName: "word", DefaultMode: to(int32(0)), Optional: to(false)}}},
		{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{
				LocalObjectReference: v1.LocalObjectReference{Name: "settings"},
				Items:                []v1.KeyToPath{{Key: "a", Path: "b", Mode: to(int32(0400))}}}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{
				Path: "cpu", ResourceFieldRef: &v1.ResourceFieldSelector{
					ContainerName: "main", Resource: "limits.cpu", Divisor: resource.MustParse("1m")}}}}},
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: to(int64(3600))}},
		}}}},
	}
}

func mainContainer() v1.Container {
	main := container("main")
	main.Ports = []v1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: v1.ProtocolTCP}}
	main.EnvFrom = []v1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &v1.ConfigMapEnvSource{
		LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Optional: to(true)}}}
	main.Env = []v1.EnvVar{
		{Name: "EMPTY"},
		{Name: "NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		{Name: "WORD", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
			LocalObjectReference: v1.LocalObjectReference{Name: "word"}, Key: "w", Optional: to(false)}}},
	}
	main.Resources = v1.ResourceRequirements{
		Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m"), v1.ResourceMemory: resource.MustParse("128Mi")},
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("0.5")},
	}
	main.VolumeMounts = []v1.VolumeMount{{Name: "empty", MountPath: "/empty", SubPathExpr: "$(NAME)",
		MountPropagation: to(v1.MountPropagationNone)}}
	main.LivenessProbe = &v1.Probe{PeriodSeconds: 5, TerminationGracePeriodSeconds: to(int64(1)),
		ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/live", Port: intstr.FromString("http"),
			HTTPHeaders: []v1.HTTPHeader{{Name: "a", Value: ""}}}}}
	main.ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
	main.StartupProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: 9, Service: to("")}}}
	main.Lifecycle = &v1.Lifecycle{
		PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"true", ""}}},
		PreStop:   &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}},
	}
	main.SecurityContext = &v1.SecurityContext{
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}, Privileged: to(false), RunAsUser: to(int64(0)),
		AllowPrivilegeEscalation: to(false), SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined},
	}
	return main
}

func fullPod() *v1.Pod {
	init := container("sidecar")
	init.RestartPolicy = to(v1.ContainerRestartPolicyAlways)
	selector := &metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "full"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a", "b"}}},
	}
	return &v1.Pod{
		TypeMeta: of("v1", "Pod"),
		ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: namespace,
			Labels: map[string]string{"app": "full", "empty": ""}, Annotations: map[string]string{"example.com/note": "ö\n"},
			Finalizers: []string{"example.com/keep"}},
		Spec: v1.PodSpec{
			Volumes: volumes(), InitContainers: []v1.Container{init}, Containers: []v1.Container{mainContainer()},
			TerminationGracePeriodSeconds: to(int64(5)), ActiveDeadlineSeconds: to(int64(600)),
			AutomountServiceAccountToken: to(false), EnableServiceLinks: to(false), ShareProcessNamespace: to(true),
			NodeSelector: map[string]string{"disk": "ssd"}, Hostname: "web", SetHostnameAsFQDN: to(false),
			HostAliases: []v1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a", "b"}}},
			DNSConfig:   &v1.PodDNSConfig{Nameservers: []string{"10.0.0.2"}, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: to("2")}, {Name: "debug"}}},
			SecurityContext: &v1.PodSecurityContext{FSGroup: to(int64(0)), SupplementalGroups: []int64{0, 1 << 30},
				Sysctls: []v1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "0"}}},
			Tolerations: []v1.Toleration{{Key: "a", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: to(int64(0))}},
			Affinity: &v1.Affinity{
				NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
					Weight: 1, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpExists}}}}}},
				PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
					TopologyKey: "kubernetes.io/hostname", LabelSelector: selector, NamespaceSelector: &metav1.LabelSelector{}}}},
			},
			TopologySpreadConstraints: []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
				WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: selector}},
			ReadinessGates: []v1.PodReadinessGate{{ConditionType: "example.com/ready"}},
		},
	}
}

func createCore(client kubernetes.Interface) {
	core := client.CoreV1()
	space := &v1.Namespace{TypeMeta: of("v1", "Namespace"), ObjectMeta: named("demo")}
	show(space)
	must(core.Namespaces().Create(ctx, space, created))
	settings := &v1.ConfigMap{TypeMeta: of("v1", "ConfigMap"), ObjectMeta: named("settings"), Immutable: to(false),
		Data: map[string]string{"a": "ä\x00", "empty": ""}, BinaryData: map[string][]byte{"bytes": {0, 255}, "none": {}}}
	show(settings)
	must(core.ConfigMaps(namespace).Create(ctx, settings, created))
	word := &v1.Secret{TypeMeta: of("v1", "Secret"), ObjectMeta: named("word"), Type: v1.SecretTypeOpaque,
		Data: map[string][]byte{"w": []byte("geheim")}, StringData: map[string]string{"x": "y"}}
	show(word)
	must(core.Secrets(namespace).Create(ctx, word, created))
	robot := &v1.ServiceAccount{TypeMeta: of("v1", "ServiceAccount"), ObjectMeta: named("robot"),
		ImagePullSecrets: []v1.LocalObjectReference{{Name: "word"}}, AutomountServiceAccountToken: to(false)}
	show(robot)
	must(core.ServiceAccounts(namespace).Create(ctx, robot, created))
	web := &v1.Service{TypeMeta: of("v1", "Service"), ObjectMeta: named("web"), Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeNodePort, Selector: map[string]string{"app": "full"}, SessionAffinity: v1.ServiceAffinityClientIP,
		SessionAffinityConfig: &v1.SessionAffinityConfig{ClientIP: &v1.ClientIPConfig{TimeoutSeconds: to(int32(60))}},
		Ports: []v1.ServicePort{
			{Name: "a", Port: 80, TargetPort: intstr.FromString("http"), NodePort: 30080, AppProtocol: to("http")},
			{Name: "b", Port: 443, TargetPort: intstr.FromInt32(8443), Protocol: v1.ProtocolTCP}}}}
	show(web)
	must(core.Services(namespace).Create(ctx, web, created))
	machine := &v1.Node{TypeMeta: of("v1", "Node"), ObjectMeta: named("node-1"), Spec: v1.NodeSpec{Unschedulable: true,
		Taints: []v1.Taint{{Key: "a", Value: "b", Effect: v1.TaintEffectNoSchedule, TimeAdded: to(metav1.NewTime(when))}}}}
	show(machine)
	must(core.Nodes().Create(ctx, machine, created))
	disk := &v1.PersistentVolume{TypeMeta: of("v1", "PersistentVolume"), ObjectMeta: named("disk"), Spec: v1.PersistentVolumeSpec{
		Capacity: quantities("1Gi"), AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: "slow",
		PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain, VolumeMode: to(v1.PersistentVolumeFilesystem),
		PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data", FSType: to("")}},
		NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"node-1"}}}}}}}}}
	show(disk)
	must(core.PersistentVolumes().Create(ctx, disk, created))
	claim := &v1.PersistentVolumeClaim{TypeMeta: of("v1", "PersistentVolumeClaim"), ObjectMeta: named("claim"), Spec: v1.PersistentVolumeClaimSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: to(""), VolumeName: "disk",
		Selector: &metav1.LabelSelector{}, Resources: v1.VolumeResourceRequirements{Requests: quantities("500Mi")}}}
	show(claim)
	must(core.PersistentVolumeClaims(namespace).Create(ctx, claim, created))
	template := &v1.PodTemplate{TypeMeta: of("v1", "PodTemplate"), ObjectMeta: named("template"), Template: v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: v1.PodSpec{Containers: []v1.Container{container("web")}}}}
	show(template)
	must(core.PodTemplates(namespace).Create(ctx, template, created))
	pod := fullPod()
	show(pod)
	must(core.Pods(namespace).Create(ctx, pod, created))
	event := &v1.Event{TypeMeta: of("v1", "Event"), ObjectMeta: named("one"), Reason: "Tried", Message: "once", Type: v1.EventTypeNormal, Count: 1,
		InvolvedObject: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "full", FieldPath: "spec.containers{main}"},
		Source:         v1.EventSource{Component: "test"}, FirstTimestamp: metav1.NewTime(when), LastTimestamp: metav1.NewTime(when)}
	show(event)
	must(core.Events(namespace).Create(ctx, event, created))
}

func createOthers(client kubernetes.Interface) {
	slow := &storage.StorageClass{TypeMeta: of("storage.k8s.io/v1", "StorageClass"), ObjectMeta: named("slow"), Provisioner: "example.com/disk",
		Parameters: map[string]string{"type": ""}, AllowVolumeExpansion: to(false), MountOptions: []string{"ro"},
		ReclaimPolicy: to(v1.PersistentVolumeReclaimRetain), VolumeBindingMode: to(storage.VolumeBindingWaitForFirstConsumer),
		AllowedTopologies: []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}}
	show(slow)
	must(client.StorageV1().StorageClasses().Create(ctx, slow, created))
	small := &node.RuntimeClass{TypeMeta: of("node.k8s.io/v1", "RuntimeClass"), ObjectMeta: named("small"), Handler: "runc",
		Overhead:   &node.Overhead{PodFixed: v1.ResourceList{v1.ResourceMemory: resource.MustParse("16Mi")}},
		Scheduling: &node.Scheduling{NodeSelector: map[string]string{"disk": "ssd"}}}
	show(small)
	must(client.NodeV1().RuntimeClasses().Create(ctx, small, created))
	high := &scheduling.PriorityClass{TypeMeta: of("scheduling.k8s.io/v1", "PriorityClass"), ObjectMeta: named("high"), Value: -1000,
		Description: "low", PreemptionPolicy: to(v1.PreemptNever)}
	show(high)
	must(client.SchedulingV1().PriorityClasses().Create(ctx, high, created))
	leader := &coordination.Lease{TypeMeta: of("coordination.k8s.io/v1", "Lease"), ObjectMeta: named("leader"), Spec: coordination.LeaseSpec{
		HolderIdentity: to("one"), LeaseDurationSeconds: to(int32(15)), AcquireTime: to(metav1.NewMicroTime(when)),
		RenewTime: to(metav1.NewMicroTime(when.Add(time.Second))), LeaseTransitions: to(int32(0))}}
	show(leader)
	must(client.CoordinationV1().Leases(namespace).Create(ctx, leader, created))
	event := &events.Event{TypeMeta: of("events.k8s.io/v1", "Event"), ObjectMeta: named("two"), EventTime: metav1.NewMicroTime(when),
		ReportingController: "example.com/test", ReportingInstance: "test-1", Action: "Try", Reason: "Tried", Note: "twice", Type: v1.EventTypeWarning,
		Regarding: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "full"},
		Series:    &events.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(when)}}
	show(event)
	must(client.EventsV1().Events(namespace).Create(ctx, event, created))
}

// change sends the other requests: updates, requests for subresources, patches and deletes.
func change(client kubernetes.Interface) {
	core := client.CoreV1()
	pods := core.Pods(namespace)
	settings := &v1.ConfigMap{TypeMeta: of("v1", "ConfigMap"), ObjectMeta: named("settings"), Data: map[string]string{"a": "2"}}
	show(settings)
	must(core.ConfigMaps(namespace).Update(ctx, settings, updated))
	applied := applycore.ConfigMap("applied", namespace).WithData(map[string]string{"a": "b"})
	must(core.ConfigMaps(namespace).Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "test"}))
	machine := &v1.Node{TypeMeta: of("v1", "Node"), ObjectMeta: named("node-1"), Status: v1.NodeStatus{
		Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("110")},
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "Ready",
			LastHeartbeatTime: metav1.NewTime(when), LastTransitionTime: metav1.NewTime(when)}},
		Images: []v1.ContainerImage{{Names: []string{"busybox:1.36"}, SizeBytes: 1 << 40}}}}
	show(machine)
	must(core.Nodes().UpdateStatus(ctx, machine, updated))
	debugged := &v1.Pod{TypeMeta: of("v1", "Pod"), ObjectMeta: named("full"), Spec: v1.PodSpec{EphemeralContainers: []v1.EphemeralContainer{{
		EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debugger", Image: "busybox:1.36", TTY: true}, TargetContainerName: "main"}}}}
	show(debugged)
	must(pods.UpdateEphemeralContainers(ctx, "full", debugged, updated))
	token := &authentication.TokenRequest{TypeMeta: of("authentication.k8s.io/v1", "TokenRequest"), Spec: authentication.TokenRequestSpec{
		Audiences: []string{"a", "b"}, ExpirationSeconds: to(int64(1200))}}
	show(token)
	must(core.ServiceAccounts(namespace).CreateToken(ctx, "robot", token, created))
	binding := &v1.Binding{TypeMeta: of("v1", "Binding"), ObjectMeta: named("full"), Target: v1.ObjectReference{Kind: "Node", Name: "node-1"}}
	show(binding)
	must(nil, pods.Bind(ctx, binding, created))
	merge := []byte(`{"metadata":{"finalizers":null}}`)
	must(pods.Patch(ctx, "full", types.MergePatchType, merge, metav1.PatchOptions{}))
	eviction := &policy.Eviction{TypeMeta: of("policy/v1", "Eviction"), ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: namespace},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: to(int64(0)), DryRun: []string{metav1.DryRunAll}}}
	show(eviction)
	must(nil, pods.EvictV1(ctx, eviction))
	options := metav1.DeleteOptions{TypeMeta: of("v1", "DeleteOptions"), GracePeriodSeconds: to(int64(0)),
		Preconditions: &metav1.Preconditions{}, PropagationPolicy: to(metav1.DeletePropagationBackground)}
	show(options)
	must(nil, pods.Delete(ctx, "full", options))
	plain := metav1.DeleteOptions{TypeMeta: of("v1", "DeleteOptions")}
	show(plain)
	must(nil, core.Services(namespace).Delete(ctx, "web", plain))
	show(plain)
	must(nil, core.ConfigMaps(namespace).DeleteCollection(ctx, plain, metav1.ListOptions{FieldSelector: "metadata.name=settings"}))
	stored := metav1.DeleteOptions{TypeMeta: of("storage.k8s.io/v1", "DeleteOptions")}
	show(stored)
	must(nil, client.StorageV1().StorageClasses().Delete(ctx, "slow", stored))
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bodies KUBECONFIG")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(nil, err)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	must(nil, err)
	createCore(client)
	createOthers(client)
	change(client)
}
