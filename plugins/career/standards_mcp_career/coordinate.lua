-- KEYS: the hash of an interaction, with the fields state, index and receipt:KEY.
-- ARGV: event, idempotency key, state and index in the database, and a JSON object that has the
-- next state by event and current state. If the database is ahead, Redis has lost data. The script
-- checks the state and receipts in Redis first: other programs may have changed them.
local transitions = cjson.decode(ARGV[5])
local function whole(value, most)
  local number = tonumber(value)
  return number and number % 1 == 0 and number >= 0 and number <= most and number
end
local saved = redis.call('HMGET', KEYS[1], 'state', 'index')
local state, index = -1, -1
if saved[1] or saved[2] then
  state, index = whole(saved[1] or '', 4), whole(saved[2] or '', 2000000000)
  if not state or not index then
    return {'backend_error', 'state'}
  end
end
if index < tonumber(ARGV[4]) then
  state, index = tonumber(ARGV[3]), tonumber(ARGV[4])
end
local field = 'receipt:' .. ARGV[2]
local saved_receipt = redis.call('HGET', KEYS[1], field)
if saved_receipt then
  local is_json, receipt = pcall(cjson.decode, saved_receipt)
  local is_sound = false
  if is_json and type(receipt) == 'table' and type(receipt.event) == 'string'
      and type(receipt.state) == 'number' and type(receipt.index) == 'number'
      and whole(receipt.index, index) then
    for _, after in pairs(transitions[receipt.event] or {}) do
      is_sound = is_sound or after == receipt.state
    end
    is_sound = is_sound and (receipt.index < index or receipt.state == state)
  end
  if not is_sound then
    return {'backend_error', 'receipt'}
  end
  if receipt.event == ARGV[1] then
    return {'already_applied', receipt.state, receipt.state, receipt.index}
  end
  return {'conflict', state, state, index}
end
local after = transitions[ARGV[1]][tostring(state)]
if not after then
  return {'invalid_transition', state, state, index}
end
local receipt = cjson.encode({event = ARGV[1], state = after, index = index + 1})
redis.call('HSET', KEYS[1], 'state', after, 'index', index + 1, field, receipt)
return {'applied', state, after, index + 1}
