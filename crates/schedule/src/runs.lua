-- The last runs of schedules, and the lease of the server that starts them.
--
-- KEYS[1] is the prefix of all keys. ARGV: operation, name of the server, its arguments.

local P = KEYS[1] .. ':'
local LEASE = P .. 'schedules_lease'
local FIELDS = { 'due', 'started', 'ended', 'result', 'detail', 'output', 'succeeded' }
local call = redis.call
local server = ARGV[2]

local operations = {}

-- Takes or extends the lease for ARGV[3] milliseconds.
function operations.lock()
  local holder = call('GET', LEASE)
  if holder and holder ~= server then return 0 end
  call('SET', LEASE, server, 'PX', ARGV[3])
  return 1
end

function operations.unlock()
  if call('GET', LEASE) == server then call('DEL', LEASE) end
  return 1
end

function operations.load()
  local all = {}
  for _, name in ipairs(call('SMEMBERS', P .. 'schedules')) do
    local run = call('HMGET', P .. 'schedule:' .. name, unpack(FIELDS))
    table.insert(run, 1, name)
    table.insert(all, run)
  end
  return all
end

function operations.save()
  if call('GET', LEASE) ~= server then return 0 end
  for at = 3, #ARGV, #FIELDS + 1 do
    call('SADD', P .. 'schedules', ARGV[at])
    for field, name in ipairs(FIELDS) do
      call('HSET', P .. 'schedule:' .. ARGV[at], name, ARGV[at + field])
    end
  end
  return 1
end

return operations[ARGV[1]]()
