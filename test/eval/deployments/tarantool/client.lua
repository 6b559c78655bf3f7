-- client.lua write: inserts tuples for ten seconds; acked.txt lists those that were acknowledged.
-- client.lua lost: is one of them missing on a server? Exit status: 0 yes, 1 no, 2 cannot tell.
local net, clock, fiber = require('net.box'), require('clock'), require('fiber')

local function connect(ip)
  return net.connect(ip .. ':3301', {connect_timeout = 2})
end

if arg[1] == 'write' then
  local acked, ending, number, server = io.open('acked.txt', 'w'), clock.monotonic() + 10, 0, nil
  while clock.monotonic() < ending do
    number = number + 1
    if not server or not server:is_connected() then
      server = connect(os.getenv('ROSE_IP_t1'))
    end
    local done = server:is_connected() and pcall(function()
      server.space.orders:insert({number, string.rep('x', 500)}, {timeout = 2})
    end)
    if done then
      acked:write(number, '\n')
      acked:flush()
    end
    fiber.sleep(0.02)
  end
  os.exit(0)
end
local highest = 0
local acked = {}
for line in io.lines('acked.txt') do
  acked[tonumber(line)] = true
  highest = highest + 1
end
if highest == 0 then
  os.exit(2)
end
for node in os.getenv('ROSE_NODES'):gmatch('%S+') do
  local ending, missing = clock.monotonic() + 20, -1
  repeat
    pcall(function()
      local there = {}
      for _, row in ipairs(connect(os.getenv('ROSE_IP_' .. node)).space.orders:select({}, {limit = 100000})) do
        there[row[1]] = true
      end
      missing = 0
      for number in pairs(acked) do
        missing = missing + (there[number] and 0 or 1)
      end
    end)
    fiber.sleep(0.3)
  until missing == 0 or clock.monotonic() > ending
  if missing ~= 0 then
    print(node, missing, 'of', highest, 'are gone; -1: it does not serve')
    os.exit(0)
  end
end
os.exit(1)
