-- All operations on the queues in Redis. Each call is atomic.
--
-- KEYS[1] is the prefix of all keys. ARGV: operation; time in Unix milliseconds, or 0 for that of
-- Redis; then the arguments of the operation.
--
-- Ids are texts of 16 digits, so that their order is that of the numbers. P is the prefix:
--   P:id                next id                  P:used            bytes of all jobs
--   P:job:ID            the job (hash)           P:paused          paused queues (set)
--   P:ready:Q           rank: priority, id       P:delayed:Q       rank: time
--   P:parked:Q:KEY      wait for the key         P:parked_keys:Q   keys with parked jobs
--   P:alive:Q, P:dead:Q all jobs by id           P:count:Q         numbers of running, parked
--   P:keys:Q            running jobs by key      P:turns:Q         job with the turn of a key
--   P:unique:Q          unique job of a key      P:rate:Q          token bucket
--   P:leases            end of each lease        P:lease:L         jobs of a lease
--   P:per_key           limits of the queues     P:commit:SERVER   last push of a server
-- Fields of a job: q queue, p priority, k key, u unique until, d due, t pushed, a failed runs,
-- m most runs, e error, b payload, tp and ts trace, z bytes, n bytes in a batch, s stage, l lease;
-- of a dead one also f bytes of its failure, x time of death, c class, w place.
-- Stages: r ready, d delayed, p parked, x running, D dead.

local P = KEYS[1] .. ':'
local call = redis.call
local position = 2
local is_woken = false

-- Most ready jobs that one search looks at.
local SEARCH_MAX = 1000
-- Most delayed jobs that one call makes ready.
local WAKE_MAX = 1000
-- Most leases that one call ends.
local REAP_MAX = 16
-- Most jobs and keys whose ages are compared.
local AGES_MAX = 100
-- Time in milliseconds whose jobs may start at once.
local BURST_MS = 1000

local function arg()
  position = position + 1
  return ARGV[position]
end

local function number()
  return tonumber(arg())
end

local now = tonumber(ARGV[2])
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function padded(id)
  return string.format('%016d', id)
end

local function get(id, ...)
  return call('HMGET', P .. 'job:' .. id, ...)
end

local function set(id, ...)
  call('HSET', P .. 'job:' .. id, ...)
end

local function has_key(key)
  return key and key ~= ''
end

local function per_key(q)
  return tonumber(call('HGET', P .. 'per_key', q) or '0')
end

local function park(id, q, key, priority)
  set(id, 's', 'p')
  call('ZADD', P .. 'parked:' .. q .. ':' .. key, -priority, id)
  call('SADD', P .. 'parked_keys:' .. q, key)
  call('HINCRBY', P .. 'count:' .. q, 'parked', 1)
end

-- Another job with this key has its turn, or as many run as may.
local function is_blocked(id, q, key, limit, taken)
  if tonumber(call('HGET', P .. 'keys:' .. q, key) or '0') + taken >= limit then
    return true
  end
  local turn = call('HGET', P .. 'turns:' .. q, key)
  return turn and turn ~= id
end

-- Puts a job that is in no stage into the one in which it waits.
local function wait(id)
  local job = get(id, 'q', 'p', 'k', 'd')
  -- Redis has evicted the job.
  if not job[1] then return end
  local q, priority, key, due = job[1], tonumber(job[2]), job[3], tonumber(job[4])
  if due > now then
    set(id, 's', 'd')
    call('ZADD', P .. 'delayed:' .. q, due, id)
    return
  end
  local limit = has_key(key) and per_key(q) or 0
  if limit > 0 and is_blocked(id, q, key, limit, 0) then
    park(id, q, key, priority)
  else
    set(id, 's', 'r')
    call('ZADD', P .. 'ready:' .. q, -priority, id)
    is_woken = true
  end
end

-- Makes as many parked jobs with this key ready as may run. The search parks the others again.
local function unpark(q, key)
  local parked = P .. 'parked:' .. q .. ':' .. key
  local limit = per_key(q)
  local first = call('ZPOPMIN', parked, limit > 0 and limit or SEARCH_MAX)
  if #first == 0 then
    return
  end
  for at = 1, #first, 2 do
    set(first[at], 's', 'r')
    call('ZADD', P .. 'ready:' .. q, first[at + 1], first[at])
  end
  call('HINCRBY', P .. 'count:' .. q, 'parked', -(#first / 2))
  if call('EXISTS', parked) == 0 then
    call('SREM', P .. 'parked_keys:' .. q, key)
  end
  is_woken = true
end

-- Takes a job out of the set of its stage.
local function leave(id)
  local job = get(id, 'q', 's', 'k')
  local q, stage, key = job[1], job[2], job[3]
  if stage == 'r' then
    call('ZREM', P .. 'ready:' .. q, id)
  elseif stage == 'd' then
    call('ZREM', P .. 'delayed:' .. q, id)
  elseif stage == 'p' then
    local parked = P .. 'parked:' .. q .. ':' .. key
    call('ZREM', parked, id)
    call('HINCRBY', P .. 'count:' .. q, 'parked', -1)
    if call('EXISTS', parked) == 0 then
      call('SREM', P .. 'parked_keys:' .. q, key)
    end
  elseif stage == 'x' then
    call('HINCRBY', P .. 'count:' .. q, 'running', -1)
    if has_key(key) then
      if call('HINCRBY', P .. 'keys:' .. q, key, -1) <= 0 then
        call('HDEL', P .. 'keys:' .. q, key)
      end
      unpark(q, key)
    end
  end
end

-- Removes the marks of a job that leaves its queue: its key is free for others.
local function release_key(id, q, key)
  if not has_key(key) then
    return
  end
  for _, of in ipairs({ 'unique:', 'turns:' }) do
    if call('HGET', P .. of .. q, key) == id then
      call('HDEL', P .. of .. q, key)
    end
  end
  unpark(q, key)
end

-- Takes a waiting or running job out of its queue.
local function take_out(id)
  local job = get(id, 'q', 'k')
  leave(id)
  call('ZREM', P .. 'alive:' .. job[1], id)
  release_key(id, job[1], job[2])
  return job[1]
end

local function remove(id)
  local bytes = call('HGET', P .. 'job:' .. id, 'z')
  take_out(id)
  call('DEL', P .. 'job:' .. id)
  call('DECRBY', P .. 'used', bytes)
end

-- Puts a running job back. With a limit of one, it keeps the turn of its key.
local function put_back(id)
  local job = get(id, 'q', 'k')
  if has_key(job[2]) and per_key(job[1]) == 1 then
    call('HSETNX', P .. 'turns:' .. job[1], job[2], id)
  end
  leave(id)
  call('HDEL', P .. 'job:' .. id, 'l')
  wait(id)
end

-- Makes the jobs of leases that have ended ready again. Returns their number.
local function reap()
  local count = 0
  for _, lease in ipairs(call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'LIMIT', 0, REAP_MAX)) do
    for _, id in ipairs(call('LRANGE', P .. 'lease:' .. lease, 0, -1)) do
      local job = get(id, 's', 'l')
      if job[1] == 'x' and job[2] == lease then
        put_back(id)
        count = count + 1
      end
    end
    call('DEL', P .. 'lease:' .. lease)
    call('ZREM', P .. 'leases', lease)
  end
  return count
end

local function insert()
  local q, priority, key, unique_ms, delay_ms = arg(), number(), arg(), number(), number()
  local attempts_max, payload, parent, state = arg(), arg(), arg(), arg()
  local bytes, size = arg(), arg()
  if unique_ms > 0 then
    local other = call('HGET', P .. 'unique:' .. q, key)
    if other and tonumber(call('HGET', P .. 'job:' .. other, 'u') or '0') > now then
      return 0
    end
  end
  local next_id = call('INCR', P .. 'id')
  local id = padded(next_id)
  set(id, 'q', q, 'p', priority, 'k', key, 'u', unique_ms > 0 and now + unique_ms or 0,
    'd', now + delay_ms, 't', now, 'a', 0, 'm', attempts_max, 'b', payload, 'tp', parent,
    'ts', state, 'z', bytes, 'n', size)
  if unique_ms > 0 then
    call('HSET', P .. 'unique:' .. q, key, id)
  end
  call('ZADD', P .. 'alive:' .. q, next_id, id)
  call('INCRBY', P .. 'used', bytes)
  wait(id)
  return next_id
end

-- Inserts the jobs of pushes. A call that is repeated after a lost response has no effect.
local function push()
  local server, number_of_call, bytes_max, pushes = arg(), arg(), number(), number()
  local last = P .. 'commit:' .. server
  local done = call('HMGET', last, 'call', 'ids')
  if done[1] == number_of_call then
    return cmsgpack.unpack(done[2])
  end
  local ids = {}
  for _ = 1, pushes do
    local jobs, bytes = number(), number()
    local is_full = tonumber(call('GET', P .. 'used') or '0') + bytes > bytes_max
    for _ = 1, jobs do
      if is_full then
        position = position + 11
        table.insert(ids, -1)
      else
        table.insert(ids, insert())
      end
    end
  end
  call('HSET', last, 'call', number_of_call, 'ids', cmsgpack.pack(ids))
  call('PEXPIRE', last, 600000)
  return ids
end

-- Whether this lease still has the job.
local function holds(lease, id)
  local job = get(id, 's', 'l')
  return job[1] == 'x' and job[2] == lease
end

local changes = {}

function changes.done()
  local lease, id = arg(), arg()
  if not holds(lease, id) then return 0 end
  remove(id)
  return 1
end

-- A negative delay leaves the time as it is.
function changes.back()
  local lease, id, attempts, delay_ms, err = arg(), arg(), arg(), number(), arg()
  if not holds(lease, id) then return 0 end
  set(id, 'a', attempts)
  if delay_ms >= 0 then set(id, 'd', now + delay_ms) end
  if err ~= '' then set(id, 'e', err) end
  put_back(id)
  return 1
end

function changes.bury()
  local lease, id, attempts, class, place, err = arg(), arg(), arg(), arg(), arg(), arg()
  if not holds(lease, id) then return 0 end
  local q = take_out(id)
  local bytes = #class + #place + #err
  set(id, 's', 'D', 'a', attempts, 'x', now, 'c', class, 'w', place, 'e', err, 'f', bytes, 'l', '')
  call('ZADD', P .. 'dead:' .. q, tonumber(id), id)
  call('INCRBY', P .. 'used', bytes)
  return 1
end

-- The batch has ended.
changes['end'] = function()
  local lease = arg()
  call('DEL', P .. 'lease:' .. lease)
  return call('ZREM', P .. 'leases', lease)
end

-- The server does not know the jobs of this lease: a response was lost.
function changes.abandon()
  local lease = arg()
  for _, id in ipairs(call('LRANGE', P .. 'lease:' .. lease, 0, -1)) do
    if holds(lease, id) then put_back(id) end
  end
  call('DEL', P .. 'lease:' .. lease)
  return call('ZREM', P .. 'leases', lease)
end

function changes.revive()
  local id = arg()
  local job = get(id, 'q', 's', 'f')
  if job[2] ~= 'D' then return 0 end
  call('DECRBY', P .. 'used', job[3])
  set(id, 'a', 0, 'u', 0, 'd', 0)
  call('ZREM', P .. 'dead:' .. job[1], id)
  call('ZADD', P .. 'alive:' .. job[1], tonumber(id), id)
  wait(id)
  return 1
end

function changes.forget()
  local id = arg()
  local job = get(id, 'q', 's', 'f', 'z')
  if job[2] ~= 'D' then return 0 end
  call('DECRBY', P .. 'used', job[3] + job[4])
  call('ZREM', P .. 'dead:' .. job[1], id)
  call('DEL', P .. 'job:' .. id)
  return 1
end

function changes.drop()
  local id = arg()
  local stage = get(id, 's')[1]
  if not stage or stage == 'x' or stage == 'D' then return 0 end
  remove(id)
  return 1
end

function changes.move()
  local id, from, to = arg(), arg(), arg()
  local job = get(id, 's', 'q')
  if not job[1] or job[1] == 'x' or job[1] == 'D' or job[2] ~= from then return 0 end
  take_out(id)
  set(id, 'q', to)
  call('ZADD', P .. 'alive:' .. to, tonumber(id), id)
  wait(id)
  return 1
end

function changes.move_dead()
  local id, from, to = arg(), arg(), arg()
  local job = get(id, 's', 'q')
  if job[1] ~= 'D' or job[2] ~= from then return 0 end
  set(id, 'q', to)
  call('ZREM', P .. 'dead:' .. from, id)
  call('ZADD', P .. 'dead:' .. to, tonumber(id), id)
  return 1
end

function changes.pause()
  return call('SADD', P .. 'paused', arg())
end

function changes.resume()
  is_woken = true
  return call('SREM', P .. 'paused', arg())
end

-- Returns for each change whether it had an effect.
local function change()
  local results = {}
  -- The server.
  arg()
  for _ = 1, number() do
    table.insert(results, changes[arg()]())
  end
  return results
end

-- Makes delayed jobs ready at their time. Returns the time until the next one; -1: there is none.
local function wake(q)
  local due = call('ZRANGEBYSCORE', P .. 'delayed:' .. q, '-inf', now, 'LIMIT', 0, WAKE_MAX)
  for _, id in ipairs(due) do
    call('ZREM', P .. 'delayed:' .. q, id)
    wait(id)
  end
  local first = call('ZRANGE', P .. 'delayed:' .. q, 0, 0, 'WITHSCORES')
  return first[2] and math.max(0, first[2] - now) or -1
end

local function sooner(left, right)
  if left < 0 then return right end
  if right < 0 then return left end
  return math.min(left, right)
end

-- Returns how many of these jobs may start, and otherwise the time to wait.
local function grant(q, wanted, batch, count, period_ms)
  local burst = math.max(1, math.min(math.floor(count * BURST_MS / period_ms), batch))
  local bucket = call('HMGET', P .. 'rate:' .. q, 'parts', 'filled')
  local full = burst * period_ms
  local parts = bucket[1] and tonumber(bucket[1]) or full
  local elapsed = math.max(0, now - tonumber(bucket[2] or now))
  parts = math.min(full, parts + elapsed * count)
  local needed = math.max(1, math.min(burst, wanted)) * period_ms
  local granted, wait_ms = 0, -1
  if parts < needed then
    wait_ms = math.ceil((needed - parts) / count)
  else
    granted = math.min(wanted, math.floor(parts / period_ms))
    parts = parts - granted * period_ms
  end
  call('HSET', P .. 'rate:' .. q, 'parts', string.format('%d', parts), 'filled', now)
  return granted, wait_ms
end

-- Selects jobs for a batch. Returns them, and the time to wait if there are none now.
local function select(q, batch, bytes_max, linger_ms)
  local chosen, parked, evicted, keys, bytes = {}, {}, {}, {}, 0
  local limit, from, is_full, first = per_key(q), 0, false, nil
  while not is_full and from < SEARCH_MAX do
    local page = call('ZRANGE', P .. 'ready:' .. q, from, from + math.min(batch * 2, 100) - 1)
    if #page == 0 then break end
    from = from + #page
    for _, id in ipairs(page) do
      local job = get(id, 'a', 'k', 'n', 'd', 't', 'p')
      local is_alone, key = tonumber(job[1] or '0') > 0, job[2]
      local may_run = job[1] and not (is_alone and #chosen > 0)
      if not job[1] then table.insert(evicted, id) end
      if may_run and limit > 0 and has_key(key) then
        if is_blocked(id, q, key, limit, 0) then
          table.insert(parked, { id, key, tonumber(job[6]) })
          may_run = false
        elseif is_blocked(id, q, key, limit, keys[key] or 0) then
          may_run = false
        else
          keys[key] = (keys[key] or 0) + 1
        end
      end
      if may_run then
        bytes = bytes + tonumber(job[3])
        if #chosen > 0 and bytes > bytes_max then
          is_full = true
          break
        end
        table.insert(chosen, id)
        first = first or math.max(tonumber(job[4]), tonumber(job[5]))
        if is_alone or #chosen >= batch then
          is_full = true
          break
        end
      end
    end
  end
  for _, id in ipairs(evicted) do
    call('ZREM', P .. 'ready:' .. q, id)
    call('ZREM', P .. 'alive:' .. q, id)
  end
  for _, job in ipairs(parked) do
    call('ZREM', P .. 'ready:' .. q, job[1])
    park(job[1], q, job[2], job[3])
  end
  if #chosen == 0 then
    return chosen, from >= SEARCH_MAX and #parked > 0 and 0 or -1
  end
  local complete = first + linger_ms
  if not is_full and complete > now and complete <= now + linger_ms then
    return {}, complete - now
  end
  return chosen, -1
end

-- Starts batches: returns the number of jobs whose lease has ended, the time to wait, and batches.
local function claim()
  local server, lease_ms, q, count, next_lease = arg(), number(), arg(), number(), number()
  local batch, bytes_max, linger_ms, rate, period_ms = number(), number(), number(), number(), number()
  local reaped = reap()
  local wait_ms = wake(q)
  local result = { reaped, 0 }
  if call('SISMEMBER', P .. 'paused', q) == 1 then
    result[2] = -1
    return result
  end
  for at = 1, count do
    local ids, later = select(q, batch, bytes_max, linger_ms)
    wait_ms = sooner(wait_ms, later)
    if #ids > 0 and rate > 0 then
      local granted, rate_ms = grant(q, #ids, batch, rate, period_ms)
      wait_ms = sooner(wait_ms, rate_ms)
      for extra = granted + 1, #ids do ids[extra] = nil end
    end
    if #ids == 0 then break end
    local lease = server .. ':' .. (next_lease + at - 1)
    local jobs = {}
    for _, id in ipairs(ids) do
      local job = get(id, 'a', 'm', 'k', 'b', 'tp', 'ts')
      call('ZREM', P .. 'ready:' .. q, id)
      set(id, 's', 'x', 'l', lease)
      call('RPUSH', P .. 'lease:' .. lease, id)
      if has_key(job[3]) then call('HINCRBY', P .. 'keys:' .. q, job[3], 1) end
      table.insert(job, 1, tonumber(id))
      table.insert(jobs, job)
    end
    call('HINCRBY', P .. 'count:' .. q, 'running', #ids)
    call('ZADD', P .. 'leases', now + lease_ms, lease)
    table.insert(result, jobs)
  end
  result[2] = wait_ms
  -- Nothing is left for other servers.
  if call('EXISTS', P .. 'ready:' .. q) == 0 then is_woken = false end
  return result
end

-- Extends leases. Returns for each whether it was still held.
local function extend()
  local lease_ms, results = number(), {}
  for _ = 1, number() do
    local lease = arg()
    local is_held = call('ZSCORE', P .. 'leases', lease)
    if is_held then call('ZADD', P .. 'leases', now + lease_ms, lease) end
    table.insert(results, is_held and 1 or 0)
  end
  return results
end

-- Time in milliseconds for which the oldest ready job has been ready; -1: there is none.
local function oldest(q)
  local since
  local function look(id)
    local job = get(id, 'd', 't')
    local at = job[1] and math.max(tonumber(job[1]), tonumber(job[2]))
    if at and (not since or at < since) then since = at end
  end
  for _, id in ipairs(call('ZRANGE', P .. 'ready:' .. q, 0, AGES_MAX - 1)) do look(id) end
  local from = '-inf'
  for _ = 1, AGES_MAX do
    local first = call('ZRANGEBYSCORE', P .. 'ready:' .. q, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if #first == 0 then break end
    look(first[1])
    from = '(' .. first[2]
  end
  for _, key in ipairs(call('SRANDMEMBER', P .. 'parked_keys:' .. q, AGES_MAX)) do
    local first = call('ZRANGE', P .. 'parked:' .. q .. ':' .. key, 0, 0)
    if first[1] then look(first[1]) end
  end
  return since and math.max(0, now - since) or -1
end

-- Returns ready, delayed, running and dead jobs, the age of the oldest, and whether it is paused.
local function figures()
  reap()
  local all = {}
  for _ = 1, number() do
    local q = arg()
    wake(q)
    local count = call('HMGET', P .. 'count:' .. q, 'running', 'parked')
    table.insert(all, {
      call('ZCARD', P .. 'ready:' .. q) + tonumber(count[2] or '0'),
      call('ZCARD', P .. 'delayed:' .. q), tonumber(count[1] or '0'),
      call('ZCARD', P .. 'dead:' .. q), oldest(q), call('SISMEMBER', P .. 'paused', q),
    })
  end
  return all
end

-- Returns ids, their bytes, and whether they run.
local function ids()
  local set_of, q, after, until_id, max = arg(), arg(), arg(), arg(), arg()
  local found = {}
  local range = call('ZRANGEBYSCORE', P .. set_of .. ':' .. q, '(' .. after, until_id, 'LIMIT', 0, max)
  for _, id in ipairs(range) do
    local job = get(id, 's', 'z')
    table.insert(found, { tonumber(id), tonumber(job[2] or '0'), job[1] == 'x' and 1 or 0 })
  end
  return found
end

local function dead()
  local q, after, until_id, max, bytes_max = arg(), arg(), arg(), arg(), number()
  local found, bytes = {}, 0
  local range = call('ZRANGEBYSCORE', P .. 'dead:' .. q, '(' .. after, until_id, 'LIMIT', 0, max)
  for _, id in ipairs(range) do
    local job = get(id, 't', 'x', 'a', 'k', 'e', 'b', 'c', 'w', 'tp', 'ts')
    bytes = bytes + #job[6] + #job[5]
    if #found > 0 and bytes > bytes_max then break end
    table.insert(job, 1, tonumber(id))
    table.insert(found, job)
  end
  return found
end

-- A server starts. If Redis has started since, all leases continue: their holders could not extend
-- them meanwhile.
local function join()
  local run, lease_ms = arg(), number()
  if call('GET', P .. 'run') ~= run then
    call('SET', P .. 'run', run)
    for _, lease in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
      call('ZADD', P .. 'leases', now + lease_ms, lease)
    end
  end
  for _ = 1, number() do
    local q, limit = arg(), arg()
    if call('HGET', P .. 'per_key', q) ~= limit then
      call('HSET', P .. 'per_key', q, limit)
      if limit ~= '1' then call('DEL', P .. 'turns:' .. q) end
      -- The search parks those that may not run.
      for _, key in ipairs(call('SMEMBERS', P .. 'parked_keys:' .. q)) do
        while call('EXISTS', P .. 'parked:' .. q .. ':' .. key) == 1 do unpark(q, key) end
      end
    end
  end
  return call('GET', P .. 'id') or '0'
end

local operations = {
  push = push, change = change, claim = claim, extend = extend, figures = figures, ids = ids,
  dead = dead, join = join, last = function() return call('GET', P .. 'id') or '0' end,
}
local result = operations[ARGV[1]]()
local senders = { push = true, change = true, claim = true }
if is_woken then call('PUBLISH', P .. 'wake', senders[ARGV[1]] and ARGV[3] or '') end
return result
