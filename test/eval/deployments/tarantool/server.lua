-- Runs one server. Usage: server.lua OWN-IP [IP of the server that it follows]
local fio = require('fio')
local own, followed = arg[1], arg[2]
if not fio.path.exists('data') then
  fio.mkdir('data')
end
box.cfg{
  listen = own .. ':3301', work_dir = 'data', memtx_memory = 33554432, wal_mode = 'fsync',
  replication = followed and {'guest@' .. followed .. ':3301'} or nil, replication_timeout = 1, replication_connect_timeout = 30,
  read_only = followed ~= nil,
}
if not followed then
  box.once('orders', function()
    box.schema.user.grant('guest', 'read,write,execute,create,replication', 'universe')
    box.schema.space.create('orders'):create_index('primary')
  end)
end
