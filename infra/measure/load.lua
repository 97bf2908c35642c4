-- The requests that `load` sends: 60% lists, 10% lists of replies, 8% comments, 8% replies, 10% likes, 4% searches.
-- Arguments: two tokens, and the id of a comment in each of the threads posts/0 to posts/19.

local prefix, sorts, tokens, ids = "/svc/api/v1/", { "newest", "oldest", "most_liked" }, {}, {}

-- Without a seed, all threads of wrk would send the same requests.
local threads = 0
function setup(thread)
    threads = threads + 1
    thread:set("seed", threads)
end

function init(arguments)
    math.randomseed(seed)
    tokens = { arguments[1], arguments[2] }
    for place = 3, #arguments do ids[place - 2] = arguments[place] end
end

function request()
    local place, of_hundred = math.random(#ids), math.random(100)
    local thread, id = "posts/" .. place - 1, ids[place]
    local headers = { ["Authorization"] = "Bearer " .. tokens[math.random(2)], ["Content-Type"] = "application/json" }
    local function get(path) return wrk.format("GET", prefix .. path, headers) end
    local function post(path, body) return wrk.format("POST", prefix .. path, headers, body) end
    if of_hundred <= 60 then return get(thread .. "/comments?sort=" .. sorts[math.random(3)]) end
    if of_hundred <= 70 then return get("comments/" .. id .. "/replies") end
    if of_hundred <= 78 then return post(thread .. "/comments", '{"body": "' .. ("Some **words** of prose. "):rep(12) .. '"}') end
    if of_hundred <= 86 then return post(thread .. "/comments", '{"body": "An answer to that.", "parent_id": ' .. id .. "}") end
    if of_hundred <= 96 then return post("comments/" .. id .. "/like", "") end
    return get("users?q=ad")
end
