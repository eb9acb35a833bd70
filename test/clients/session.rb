# A session of the Ruby client kubeclient: discovery, create, watch, log, update with a conflict, patch, list in pages, delete.
# Arguments: the path of the kubeconfig and the namespace. Prints a line for each step. Errors raise an exception.
require 'kubeclient'

kubeconfig, namespace = ARGV
context = Kubeclient::Config.read(kubeconfig).context
client = Kubeclient::Client.new(context.api_endpoint, 'v1', ssl_options: context.ssl_options, auth_options: context.auth_options)

client.discover
puts "kinds #{%w[pod service config_map].all? { |kind| client.respond_to?("get_#{kind}s") }}"
puts "nodes #{client.get_nodes.map { |node| node.metadata.name }}"

client.create_pod(
  Kubeclient::Resource.new(
    metadata: { name: 'ruby', namespace: namespace, labels: { 'made-by': 'ruby' } },
    spec: {
      restartPolicy: 'Never',
      containers: [{ name: 'app', image: 'busybox:1.28', command: ['sh', '-c', 'echo from ruby; exit 3'] }]
    }
  )
)
phases = []
watcher = client.watch_pods(namespace: namespace, label_selector: 'made-by=ruby', timeout: 60)
watcher.each do |notice|
  phase = notice.object.status.phase
  phases << phase unless phases.last == phase
  watcher.finish if phase == 'Failed'
end
puts "ended #{phases.last}"
state = client.get_pod('ruby', namespace).status.containerStatuses[0].state.terminated
puts "exit #{state.exitCode} #{state.reason}"
puts "log #{client.get_pod_log('ruby', namespace).to_s.strip}"

map = client.create_config_map(Kubeclient::Resource.new(metadata: { name: 'one', namespace: namespace }, data: { a: '1' }))
stale = client.get_config_map('one', namespace)
map.data.a = '2'
puts "update #{client.update_config_map(map).data.a}"
begin
  stale.data.a = '3'
  client.update_config_map(stale)
rescue Kubeclient::HttpError => e
  puts "conflict #{e.error_code}"
end
puts "patch #{client.patch_config_map('one', { data: { b: '4' } }, namespace).data.b}"

2.upto(5) { |i| client.create_config_map(Kubeclient::Resource.new(metadata: { name: "page-#{i}", namespace: namespace })) }
names = []
continue = nil
loop do
  page = client.get_config_maps(namespace: namespace, limit: 2, continue: continue)
  names.concat(page.map { |entry| entry.metadata.name })
  continue = page.continue
  break if page.last?
end
puts "pages #{(names - ['kube-root-ca.crt']).sort.join(' ')}"

client.delete_pod('ruby', namespace)
begin
  client.get_pod('ruby', namespace)
rescue Kubeclient::ResourceNotFoundError => e
  puts "missing #{e.error_code}"
end
