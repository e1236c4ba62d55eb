-- Requests for wrk from a job in the environment: one text, or some in turn from a file of records of one width.
local file, width = os.getenv('JOB_FILE'), tonumber(os.getenv('JOB_WIDTH'))
local first, count = tonumber(os.getenv('JOB_FIRST')), tonumber(os.getenv('JOB_COUNT'))
local before, after = os.getenv('JOB_BEFORE'), os.getenv('JOB_AFTER')
local requests, index = {}, 0

function init()
  if file == nil then
    requests[1], count = before .. after, 1
    return
  end
  local input = io.open(file, 'rb')
  input:seek('set', first * width)
  for number = 1, count do requests[number] = before .. input:read(width) .. after end
  input:close()
end

function request()
  index = index % count + 1
  return requests[index]
end

function done(summary)
  local errors = summary.errors
  io.write(string.format('JOB {"requests":%d,"seconds":%f,"refused":%d,"broken":%d}\n', summary.requests, summary.duration / 1000000,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
